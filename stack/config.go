package stack

import (
	"log/slog"
	"runtime"

	"loam/stack/tcp"
)

// Config is what a stack is made from. The zero value is a good stack.
type Config struct {
	// Shards is the number of goroutines that own connections. Zero: one for
	// each CPU that Go uses, at most 8.
	Shards int
	// TCP holds the defaults of TCP connections.
	TCP tcp.Config
	// Log receives what an operator should know (an address conflict, a device
	// that failed). Nil: nothing is logged.
	Log *slog.Logger
	// NoIPv6 leaves the stack without IPv6: no interface has it, and there is no ::1.
	NoIPv6 bool
	// MaxReassembly bounds the memory of incomplete datagrams, in bytes, for
	// each shard. Zero: 1 MiB.
	MaxReassembly int
	// MaxTimeWait bounds the connections in TIME-WAIT that no program holds, for
	// each shard; beyond it the oldest gives way. Zero: 16384.
	MaxTimeWait int
	// MaxOrphans bounds the connections that their program has closed and whose peer has
	// not let them end, for each shard; beyond it the oldest is reset. Zero: 4096.
	MaxOrphans int
	// DNSChanged is called when Stack.DNS says something else than before, by whoever
	// has changed it: SetDNS, or a goroutine of the stack, which waits for it. Nil: nobody
	// asks.
	DNSChanged func()
	// Resumed is called by a goroutine of the stack when it goes on after it has, or
	// might have, waited. A runtime that leaves it to the present thread to run what such
	// a goroutine has woken learns from it that the thread has something else to do
	// first. Nil: nobody asks.
	Resumed func()
}

const maxDefaultShards = 8

func (c Config) withDefaults() Config {
	if c.Shards <= 0 {
		c.Shards = min(runtime.GOMAXPROCS(0), maxDefaultShards)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxReassembly <= 0 {
		c.MaxReassembly = 1 << 20
	}
	if c.MaxTimeWait <= 0 {
		c.MaxTimeWait = defaultTimeWait
	}
	if c.MaxOrphans <= 0 {
		c.MaxOrphans = defaultOrphans
	}
	if c.Resumed == nil {
		c.Resumed = func() {}
	}
	return c
}
