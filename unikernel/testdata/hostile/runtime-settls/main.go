// Command runtime-settls replaces a function of the runtime that the entry point calls.
package main

func main() {
}
