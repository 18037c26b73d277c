// Command dynamic-empty asks for a library without a name, so that the file gets an interpreter.
package main

import _ "unsafe"

//go:cgo_import_dynamic _ _ ""

func main() {}
