// Package ring implements the byte queues between a program and the shard that owns its connection: Send for
// outgoing bytes, Receive for incoming bytes. They implement Outgoing and Incoming of package tcp.
//
// Bytes are addressed by their offset in the stream, a 64-bit number from 0 that never wraps. Sequence
// numbers are used only inside package tcp. Memory is taken in chunks of 4 KiB from a pool as bytes arrive,
// and returned as they leave. A drained queue holds no chunks, so a hundred thousand idle connections cost a
// hundred thousand small structs. Bytes that arrive in order in a large frame stay in the frame until they
// are read (loan.go). Read store.go first.
//
// A queue is not a state machine but a buffer shared by two goroutines, the program's and the shard's, and
// therefore has a mutex. The mutex protects the set of chunks and the valid offsets. It is not held while
// bytes are copied, so that neither side waits for the other's memcpy; each method explains why that is safe.
//
//	program            shard                        frame
//	Send.Write    ->   Send.End, ReadAt, Release    -> out
//	Receive.Read  <-   Receive.WriteAt, Lend, Commit <- in
//
// Each side is one goroutine at a time; the caller serializes several writers of one connection. Neither side
// blocks or wakes the other; the stack does the wake-ups.
//
// Rejected: one contiguous ring per direction, which would keep its largest size for ever or copy to grow.
// Rejected: a linked list of chunks, where a retransmission from the middle of a large window walks the list
// under the lock.
package ring
