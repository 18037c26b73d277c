package stack

import (
	"log/slog"
	"runtime"

	"loam/stack/tcp"
)

// Config configures a stack. The zero value is valid and selects the defaults.
type Config struct {
	// Shards is the number of shards. Zero: GOMAXPROCS, at most 8.
	Shards int
	// TCP holds the defaults of TCP connections.
	TCP tcp.Config
	// Log receives messages for an operator, such as an address conflict or a device failure. Nil: nothing is logged.
	Log *slog.Logger
	// NoIPv6 disables IPv6 on all interfaces, including ::1.
	NoIPv6 bool
	// MaxReassembly bounds the memory of incomplete datagrams, in bytes per shard. Zero:
	// 1 MiB.
	MaxReassembly int
	// MaxTimeWait bounds the number of connections in TIME-WAIT that no program holds,
	// per shard. Above it, the oldest is removed. Zero: 16384.
	MaxTimeWait int
	// MaxOrphanBytes bounds the memory of orphans, in bytes. An orphan is a connection that its program has closed but that
	// has not ended yet. It is charged its unsent and unacknowledged bytes plus 2 KiB. Each shard has an equal share; above
	// it, the oldest orphan is reset. Zero: 1 GiB.
	MaxOrphanBytes int
	// MaxSendBuffer bounds the send buffer of a connection, in bytes: data that was written and is not acknowledged. Below the
	// bound, the send buffer is twice the congestion window. SO_SNDBUF (TCPOptions.SendBuffer) sets a fixed size for one
	// connection and is not limited by this bound. Zero: 16 MiB. For the receive buffer, see tcp.Config.
	MaxSendBuffer int
	// DNSChanged is called after the result of Stack.DNS may have changed. It runs on the goroutine that made the change,
	// which is the caller of SetDNS or a goroutine of the stack, and that goroutine waits for it. Nil: no call.
	DNSChanged func()
	// Resumed is called by a goroutine of the stack when it continues after a wait, or after a call that might have waited.
	// Loam's runtime does not start a woken goroutine before the current thread waits. Resumed informs it that the thread is
	// busy, so that it starts woken goroutines on another thread. Nil: no call.
	Resumed func()
}

const maxDefaultShards = 8

// withDefaults returns c with defaults in place of unset fields.
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
	if c.MaxOrphanBytes <= 0 {
		c.MaxOrphanBytes = defaultOrphanBytes
	}
	if c.MaxSendBuffer <= 0 {
		c.MaxSendBuffer = defaultMaxSendBuffer
	}
	if c.Resumed == nil {
		c.Resumed = func() {}
	}
	return c
}
