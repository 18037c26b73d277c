package model

// Disk is a block device whose data is in memory (virtio 1.2 section 5.2).
type Disk struct {
	*Device
	Data    []byte
	Status  func(kind uint32, sector uint64) uint8 // returns the result of a request; nil: all requests succeed
	Flushed int                                    // number of flush requests received
}

// Features that NewDisk accepts.
const (
	DiskSizeMax  = 1 << 1
	DiskSegMax   = 1 << 2
	DiskReadOnly = 1 << 5
	DiskBlock    = 1 << 6
	DiskFlush    = 1 << 9
	DiskTopology = 1 << 10
	DiskQueues   = 1 << 12
	DiskDiscard  = 1 << 13
	DiskZeroes   = 1 << 14
)

// NewDisk returns a disk. sectors is its size in sectors of 512 bytes, and block the block size that it reports, in
// bytes (blk_size). Its limits on request sizes are low, so that drivers have to split requests.
func NewDisk(sectors int, features uint64, block uint32) *Disk {
	config := make([]byte, 60)
	le.PutUint64(config, uint64(sectors))
	le.PutUint32(config[8:], 8192) // size_max: maximum size of a segment in bytes
	le.PutUint32(config[12:], 4)   // seg_max: maximum number of segments in a request
	le.PutUint32(config[20:], block)
	config[24] = 3                 // physical_block_exp: a physical block has 2^3 logical blocks
	le.PutUint16(config[34:], 3)   // num_queues: number of request queues
	le.PutUint32(config[36:], 100) // max_discard_sectors: maximum size of a discard
	le.PutUint32(config[40:], 1)
	le.PutUint32(config[48:], 64) // max_write_zeroes_sectors: maximum size of a request to write zeroes
	le.PutUint32(config[52:], 1)
	d := &Disk{Data: make([]byte, sectors*512), Device: &Device{Kind: 2, Features: features, Config: config}}
	d.Work = d.work
	return d
}

func (d *Disk) work(*Device) {
	for _, q := range d.Queues {
		for c := q.Take(); c != nil; c = q.Take() {
			status, n := d.do(c)
			c.Scatter(c.InLen()-1, []byte{status})
			q.Done(c, n+1)
		}
	}
}

// do executes one request. It returns the status, and the number of bytes of data that it has stored in the chain.
func (d *Disk) do(c *Chain) (status uint8, n int) {
	const ok, failed, unsupported = 0, 1, 2
	var header [16]byte
	if c.Gather(0, header[:]) < len(header) || c.InLen() < 1 {
		return failed, 0
	}
	kind, sector := le.Uint32(header[:]), le.Uint64(header[8:])
	if d.Status != nil {
		if s := d.Status(kind, sector); s != ok {
			return s, 0
		}
	}
	size := max(c.OutLen()-len(header), c.InLen()-1)
	data, fits := d.sectors(sector, size)
	switch kind {
	case 0: // read
		if !fits {
			return failed, 0
		}
		return ok, c.Scatter(0, data)
	case 1: // write
		if !fits {
			return failed, 0
		}
		c.Gather(len(header), data)
		return ok, 0
	case 4: // flush
		d.Flushed++
		return ok, 0
	case 11, 13: // discard, write zeroes
		var r [16]byte
		c.Gather(len(header), r[:])
		data, fits := d.sectors(le.Uint64(r[:]), int(le.Uint32(r[8:]))*512)
		if !fits {
			return failed, 0
		}
		clear(data)
		return ok, 0
	}
	return unsupported, 0
}

// sectors returns size bytes of data, starting at a sector; false if they are out of range.
func (d *Disk) sectors(sector uint64, size int) ([]byte, bool) {
	if size%512 != 0 || sector > uint64(len(d.Data)/512) || size > len(d.Data)-int(sector)*512 {
		return nil, false
	}
	return d.Data[sector*512:][:size], true
}
