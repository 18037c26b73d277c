// Command calls tries the technique that its argument names: to reach something outside of the program by
// system calls that package syscall does not make. Each technique has a file of its name.
package main

import (
	"fmt"
	"os"
	"slices"
)

// techniques are all, by name.
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
