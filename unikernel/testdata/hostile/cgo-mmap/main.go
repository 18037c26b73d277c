// Command cgo-mmap gives the runtime code to call by the variable _cgo_mmap, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
