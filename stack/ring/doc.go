// Package ring holds the bytes between a program and the shard that owns its
// connection: Send in the one direction, Receive in the other. They are what
// package tcp calls Outgoing and Incoming.
//
// Bytes are addressed by their offset in the stream, from 0, as 64-bit numbers
// that never wrap; sequence numbers stay inside the protocol machine. Memory is
// taken in chunks of 4 KiB from a pool as bytes come and goes back as they
// leave: a queue that is drained holds none, so that a hundred thousand idle
// connections cost a hundred thousand small structs. What arrives in order in a
// large frame stays there instead until it is read (loan.go). Read store.go first.
//
// This is no protocol machine but a leaf buffer shared by two goroutines, the
// program's and the shard's, so it has a mutex. The mutex guards which chunks
// there are and which offsets are valid; it is not held while bytes are copied
// (each method says why that is safe), so that neither side waits for the
// other's memcpy.
//
//	program            shard                        frame
//	Send.Write    ->   Send.End, ReadAt, Release    -> out
//	Receive.Read  <-   Receive.WriteAt, Lend, Commit <- in
//
// Each side is one goroutine at a time: several writers of one connection are
// put in order by whoever offers them the connection. Neither side blocks and
// neither wakes the other; doorbells are the business of the stack.
//
// Rejected: one contiguous ring per direction, which would hold its largest size
// for ever or copy to grow; a linked list of chunks, in which a retransmission
// from the middle of a large window walks the list under the lock.
package ring
