// Command runtime-check replaces a function of the runtime that is written in Go.
package main

func main() {
}
