// Command cgo-yield gives the runtime code to call by the variable _cgo_yield, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
