// Command cgo-notify-runtime-init-done gives the runtime code to call by the variable _cgo_notify_runtime_init_done, which is for cgo.
package main

import (
	_ "unsafe"
)

func main() {
}
