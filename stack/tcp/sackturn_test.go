package tcp

import "testing"

// RFC 2018 section 4: the first block is for the segment that the acknowledgment answers. If more ranges arrive in
// one turn (before the connection is polled) than an acknowledgment has blocks for, several acknowledgments report
// them in order of arrival.
func TestManyRangesInATurnAreAllTold(t *testing.T) {
	c := established(t, nil, ", sackOK")
	for i := 1; i <= 6; i++ {
		c.send("A " + itoa(2000*i+1) + ":" + itoa(2000*i+1001) + " ack 1")
	}
	c.want("A 1 ack 1 <sack 8001-9001 6001-7001 4001-5001 2001-3001>")
	c.want("A 1 ack 1 <sack 12001-13001 10001-11001 8001-9001 6001-7001>")
	c.wantIdle()
	c.send("A 1:2001 ack 1") // data up to the next gap
	c.want("A 1 ack 3001 <sack 12001-13001 10001-11001 8001-9001 6001-7001>")
	c.wantIdle()
}
