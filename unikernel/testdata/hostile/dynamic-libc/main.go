// Command dynamic-libc asks for a library of C.
package main

import (
	_ "unsafe"
)

//go:cgo_import_dynamic libc_getpid getpid "libc.so.6"

func main() {
}
