// Command runtime-gate replaces the function by which the runtime makes system calls.
package main

func main() {
}
