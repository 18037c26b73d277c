// Command runtime-check replaces a Go function of the runtime.
package main

func main() {
}
