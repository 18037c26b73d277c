// Command runtime-gate replaces the runtime's function that makes system calls.
package main

func main() {
}
