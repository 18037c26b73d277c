// Command dynamic-empty imports a dynamic library with an empty name, so that the file requests a dynamic loader.
package main

import _ "unsafe"

//go:cgo_import_dynamic _ _ ""

func main() {}
