package sink

import "fmt"

// ID identifies a sequence of numbered frames of a sender. Each flow of each queue of each stream has its own sequence
// numbers, because the network, or sending on several queues, may legitimately reorder frames of different flows. An ID
// is the stream number in a tag. It consists of 5 bits for the stream, 5 bits for the queue, and 6 bits for the flow.
type ID uint16

// The number of streams, queues and flows that an ID can represent.
const (
	MaxStreams = 32
	MaxQueues  = 32
	MaxFlows   = 64 // flows of each stream and queue; further flows share these numbers
)

// NewID returns the ID of a flow. All numbers start at 0.
func NewID(stream, queue, flow int) ID {
	return ID(stream%MaxStreams<<11 | queue%MaxQueues<<6 | flow%MaxFlows)
}

// Stream returns the number of the stream.
func (i ID) Stream() int { return int(i >> 11) }

// Queue returns the number of the sender's queue.
func (i ID) Queue() int { return int(i >> 6 % MaxQueues) }

// Flow returns the number of the flow within its stream and queue.
func (i ID) Flow() int { return int(i % MaxFlows) }

// String returns "stream/queue/flow".
func (i ID) String() string { return fmt.Sprintf("%d/%d/%d", i.Stream(), i.Queue(), i.Flow()) }
