package ring

import "loam/link"

// Send and Recv for the queues of a device: the ring with the checks of link.Info and with
// counters.

// Transmit implements Send of a queue whose frames go into the ring.
func (r *Ring) Transmit(info *link.Info, c *link.Counters, fs []*link.Frame) (n int, err error) {
	return link.Transmit(info, c, r, fs)
}

// Receive implements Recv of a queue whose frames come out of the ring.
func (r *Ring) Receive(c *link.Counters, fs []*link.Frame) (int, error) {
	n, err := r.Recv(fs)
	bytes := 0
	for _, f := range fs[:n] {
		bytes += f.Len()
	}
	c.Received(n, bytes)
	return n, err
}
