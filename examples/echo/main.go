// Command echo is the echo service of RFC 862 on TCP and UDP: what is sent to it
// comes back. It knows nothing of Loam.
//
//	loam run -p 7007:7 -p 7007:7/udp ./examples/echo
//
// It ends on an interrupt or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	addr := flag.String("addr", ":7", "where to listen, on TCP and UDP")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

// serve echoes until ctx ends.
func serve(ctx context.Context, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	defer p.Close()
	log.Printf("echo: listening on %s, TCP and UDP", l.Addr())
	failed := make(chan error, 2)
	go func() { failed <- echoStreams(l) }()
	go func() { failed <- echoDatagrams(p) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func echoStreams(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			io.Copy(c, c)
		}()
	}
}

func echoDatagrams(p net.PacketConn) error {
	b := make([]byte, 65535)
	for {
		n, from, err := p.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err == nil {
			p.WriteTo(b[:n], from)
		}
	}
}
