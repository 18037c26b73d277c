// Package block defines block devices: the interface between storage and its users. A device
// carries out requests on ranges of sectors. The package does for sectors what package link does
// for frames.
//
// Read in this order: request.go (a request and its owner), device.go (the guarantees of a device),
// completions.go (how a request comes back), errors.go, check.go (which requests are valid), io.go
// (blocking calls for simple users), vector.go (blocking calls on memory in pieces).
//
// A user fills in requests and passes them to a device with Submit, in batches. Submit never blocks
// and never fails: every request comes back exactly once, with its error in it, to the Completions
// that it names. Requests that the device has no room for wait inside the device, in order of
// submission.
//
// # Durability
//
// Power may fail at any moment. These rules define what a device holds afterwards. "Write" includes
// WriteZeroes and Discard unless they are named.
//
//  1. A write is visible once it has completed: a read that is submitted after that
//     returns the new data. Between submission and completion, a read of the same
//     sectors may return the old data, the new data, or a mixture by sector.
//  2. Requests in flight at the same time have no order, whatever queue they are on
//     and whatever sectors they touch. A user that needs an order waits for a
//     completion.
//  3. A Flush that completes without an error makes durable every write that had
//     completed without an error before the Flush was submitted, on all queues.
//     A write that was still in flight at that moment is not covered, even if it
//     completes before the Flush does.
//  4. A Write or WriteZeroes with the flag FUA is durable itself when it completes
//     without an error. It makes no other write durable.
//  5. If Info.Volatile is false, every write is durable when it completes without
//     an error. Flush then succeeds and does nothing.
//  6. A write that is not durable may be applied, wholly or in part, or lost. A
//     sector of Info.LogicalSector bytes is never torn: it holds one of the values
//     that were written to it since it was last durable, or the durable value.
//     Different sectors are independent, even within one request (a torn write),
//     and no order of writes between two flushes can be relied on. A Discard leaves
//     each sector as it was or with undefined contents; a durable Discard does too.
//  7. A write that completes with an error may have changed any of its sectors, as
//     in rule 6, and stays in that state: no later Flush makes it durable. Its
//     sectors are undefined until they are written again.
//  8. After a Flush that completes with an error, the writes that it covers are in
//     the state of rule 6, and a later Flush that succeeds does not cover them: the
//     device may have dropped them. The user writes them again or gives up.
//
// Close does not flush.
//
// The devices and wrappers are in folders of their own. Each passes blocktest.
package block
