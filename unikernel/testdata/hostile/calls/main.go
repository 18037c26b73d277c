// Command calls attempts to affect something outside of the program, by system calls that package syscall does not
// make. Its argument names the technique. Each technique is in a file of its own.
package main

import (
	"fmt"
	"os"
	"slices"
)

// techniques maps names to functions. Each file adds its own.
var techniques = map[string]func(){}

func main() {
	if len(os.Args) < 2 {
		var names []string
		for name := range techniques {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	techniques[os.Args[1]]()
}
