// Command runtime-settls replaces a function of the runtime that its entry calls.
package main

func main() {
}
