// Command runtime-rt0 replaces the entry point of all programs.
package main

func main() {
}
