package main

import (
	"fmt"
	"net"
	"time"

	"example.com/hostile/attack"
)

func init() { techniques["port"] = tryPort }

// tryPort connects to the host's loopback, by every address and name that may lead there.
func tryPort() {
	for _, host := range []string{"127.0.0.1", "10.0.2.2", "localhost", "::1", "fd6c:6f61:6d00::2", "127.0.0.2", "0.0.0.0", "::ffff:127.0.0.1"} {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(attack.Port())), 300*time.Millisecond)
		if err == nil {
			c.Write([]byte("was here"))
		}
	}
}
