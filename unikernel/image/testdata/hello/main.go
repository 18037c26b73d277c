// Command hello is linked for a virtual machine.
package main

import (
	"fmt"

	_ "loam/kernel"
)

func main() { fmt.Println("hello") }
