// Command cgo-thread-start gives the runtime code to call by the variable _cgo_thread_start, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
