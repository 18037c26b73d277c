// Command dynamic-libc imports the dynamic C library.
package main

import (
	_ "unsafe"
)

//go:cgo_import_dynamic libc_getpid getpid "libc.so.6"

func main() {
}
