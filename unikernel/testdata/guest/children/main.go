// Command children starts other programs and itself by os/exec and prints what happens. Its output on Loam is the same as
// on Linux.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) > 1 {
		if f := helpers[os.Args[1]]; f != nil {
			f(os.Args[2:])
			return
		}
	}
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"output", output}, {"input", input}, {"files", extraFiles}, {"place", place}, {"status", status}, {"signals", signals},
		{"cancel", cancel}, {"lookup", lookup}, {"errors", refusals}, {"scripts", scripts}, {"groups", groups}, {"credentials", user},
		{"file", sharedFile}, {"tcp", overTCP}, {"unix", overUnix}, {"notify", notified}, {"terminal", terminal}, {"proc", proc}, {"self", self}, {"many", many},
	} {
		if len(os.Args) == 1 || strings.Contains(" "+strings.Join(os.Args[1:], " ")+" ", " "+c.name+" ") {
			fmt.Println("#", c.name)
			c.f()
		}
	}
	fmt.Println("ok")
}

// must ends the program after an error.
func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	return v
}

// none ends the program after an error.
func none(err error) { must(0, err) }
