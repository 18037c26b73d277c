package sink

import "fmt"

// ID tells the numbered sequences of a sender apart: each flow of each queue of
// each stream counts by itself, so that frames which the network or a second
// queue may pass on in another order are not taken for reordered. It is the
// number of a stream in a tag: 5 bits of stream, 5 of queue, 6 of flow.
type ID uint16

// What an ID has room for.
const (
	MaxStreams = 32
	MaxQueues  = 32
	MaxFlows   = 64 // of a stream on a queue; more share the numbers
)

// NewID makes the ID of a flow; each counts from 0.
func NewID(stream, queue, flow int) ID {
	return ID(stream%MaxStreams<<11 | queue%MaxQueues<<6 | flow%MaxFlows)
}

// Stream is the number of the stream.
func (i ID) Stream() int { return int(i >> 11) }

// Queue is the number of the sender's queue.
func (i ID) Queue() int { return int(i >> 6 % MaxQueues) }

// Flow is the number of the flow among those of its stream and queue.
func (i ID) Flow() int { return int(i % MaxFlows) }

// String is the three numbers.
func (i ID) String() string { return fmt.Sprintf("%d/%d/%d", i.Stream(), i.Queue(), i.Flow()) }
