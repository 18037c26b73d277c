package file

// Holder is implemented by files that keep data in the kernel's memory.
type Holder interface {
	// Held returns an estimate of the bytes of the data.
	Held() int64
}

// heapOfDescription is an estimate of the bytes of an open file description and its file.
const heapOfDescription = 1 << 10

// Held returns an estimate of the bytes of the kernel's heap that the table keeps. A description with several references
// counts with its part.
func (d *Table) Held() int64 {
	const heapOfChunk = 10 << 10 // a chunk, and the table itself, in bytes
	sum := int64(heapOfChunk)
	for i := range d.chunks { // without the lock: files may be locked for long
		c := d.chunks[i].Load()
		if c == nil {
			continue
		}
		sum += heapOfChunk
		for j := range c.slots {
			if o := c.slots[j].Load(); o != nil {
				sum += o.Held() / int64(max(o.refs.Load(), 1))
			}
		}
	}
	return sum / int64(max(d.others.Load()+1, 1))
}

// Held returns an estimate of the bytes of the description and its file.
func (o *Description) Held() int64 {
	if h, ok := o.File.(Holder); ok {
		return heapOfDescription + h.Held()
	}
	return heapOfDescription
}
