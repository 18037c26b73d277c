// Command cgo-init gives the runtime code to call by the variable _cgo_init, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
