// Command streams uses its standard streams. Its first argument selects how.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	switch os.Args[1] {
	case "copy": // copies the input to both outputs
		n, err := io.Copy(io.MultiWriter(os.Stdout, os.Stderr), os.Stdin)
		check(err)
		fmt.Fprintf(os.Stderr, "%d", n)
	case "hash": // prints the hash of the input
		sum := sha256.New()
		_, err := io.Copy(sum, os.Stdin)
		check(err)
		fmt.Printf("%x\n", sum.Sum(nil))
	case "write": // writes a given number of bytes
		var n int
		_, err := fmt.Sscan(os.Args[2], &n)
		check(err)
		_, err = os.Stdout.Write(bytes.Repeat([]byte("0123456789abcdef"), n/16))
		check(err)
	case "some": // reads a given number of bytes and no more
		b := make([]byte, len(os.Args[2]))
		_, err := io.ReadFull(os.Stdin, b)
		check(err)
		fmt.Println(string(b) == os.Args[2])
	case "order": // prints lines on both outputs and by the runtime, whose order must be kept
		for i := range 20 {
			fmt.Println(i)
			fmt.Fprintln(os.Stderr, i)
			println(i)
		}
		panic("last")
	case "idle": // other goroutines run while a read blocks
		go func() {
			for range 3 {
				time.Sleep(time.Millisecond)
				fmt.Println("tick")
			}
			fmt.Println("ready")
		}()
		b, err := io.ReadAll(os.Stdin)
		check(err)
		fmt.Println(strings.ToUpper(string(b)))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
