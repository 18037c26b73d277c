// Command runtime-rt0 replaces the first function of all programs.
package main

func main() {
}
