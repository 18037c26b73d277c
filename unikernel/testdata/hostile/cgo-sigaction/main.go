// Command cgo-sigaction gives the runtime code to call by the variable _cgo_sigaction, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
