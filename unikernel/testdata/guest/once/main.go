// Command once echoes on one connection to port 7, and ends with it.
package main

import (
	"io"
	"net"

	"example.com/guest/internal/check"
)

func main() {
	l, err := net.Listen("tcp", ":7")
	check.Nil(err, "listen")
	c, err := l.Accept()
	check.Nil(err, "accept")
	_, err = io.Copy(c, c)
	check.Nil(err, "copy")
	check.Nil(c.Close(), "close")
}
