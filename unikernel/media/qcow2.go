package media

import "encoding/binary"

// QEMU's disk format, version 3. Source: QEMU, "QCow2 image format".

const (
	qcowBits    = 16 // clusters have 1<<qcowBits bytes
	qcowCluster = 1 << qcowBits
	qcowHeader  = 104
	qcowCopied  = 1 << 63 // flag of an entry: its cluster has one reference
	qcowMapped  = qcowCluster / 8
	qcowCounted = qcowCluster / 2 // reference counts in a cluster, which have 16 bits
)

// qcow2 returns the file for a disk. Clusters of the disk that are zero take no space. The file has, in this order: the
// header, the table of blocks of reference counts, these blocks, the first-level table, the second-level tables, and the
// clusters of the disk.
func qcow2(disk *image) *image {
	clusters := align(disk.size, qcowCluster) / qcowCluster
	used := usedClusters(disk)
	second := align(clusters, qcowMapped) / qcowMapped // number of second-level tables: each maps 512 MiB
	first := align(second*8, qcowCluster) / qcowCluster
	counts, counters := int64(1), int64(1) // clusters with reference counts, clusters of their table
	var total int64
	for {
		total = 1 + counters + counts + first + second + int64(len(used))
		need := align(total, qcowCounted) / qcowCounted
		if need <= counts && counts <= counters*qcowMapped {
			break
		}
		counts = max(need, counts)
		counters = align(counts, qcowMapped) / qcowMapped
	}
	countsAt := 1 + counters
	firstAt := countsAt + counts
	secondAt := firstAt + first
	dataAt := secondAt + second

	be := binary.BigEndian
	header := make([]byte, qcowHeader, qcowHeader+8)
	copy(header, "QFI\xfb")
	be.PutUint32(header[4:], 3)
	be.PutUint32(header[20:], qcowBits)
	be.PutUint64(header[24:], uint64(disk.size))
	be.PutUint32(header[36:], uint32(second))
	be.PutUint64(header[40:], uint64(firstAt*qcowCluster))
	be.PutUint64(header[48:], qcowCluster)
	be.PutUint32(header[56:], uint32(counters))
	be.PutUint32(header[96:], 4) // reference counts have 1<<4 bits
	be.PutUint32(header[100:], qcowHeader)
	header = header[:qcowHeader+8] // the end of the header extensions

	table := make([]byte, 8*counts)
	for i := range counts {
		be.PutUint64(table[8*i:], uint64((countsAt+i)*qcowCluster))
	}
	references := make([]byte, 2*total)
	for i := range total {
		be.PutUint16(references[2*i:], 1)
	}
	one := make([]byte, 8*second)
	for i := range second {
		be.PutUint64(one[8*i:], qcowCopied|uint64((secondAt+i)*qcowCluster))
	}
	two := make([]byte, 8*clusters)
	for i, n := range used {
		be.PutUint64(two[8*n:], qcowCopied|uint64((dataAt+int64(i))*qcowCluster))
	}
	m := &image{size: total * qcowCluster}
	m.add(0, header)
	m.add(qcowCluster, table)
	m.add(countsAt*qcowCluster, references)
	m.add(firstAt*qcowCluster, one)
	m.add(secondAt*qcowCluster, two)
	m.addClusters(disk, used, dataAt)
	return m
}

// usedClusters returns the numbers of the clusters of a disk that contain a part of an extent, in ascending order.
func usedClusters(disk *image) (used []int64) {
	next := int64(0)
	for _, e := range disk.extents {
		for n := max(next, e.at/qcowCluster); n*qcowCluster < e.at+int64(len(e.data)); n++ {
			used = append(used, n)
			next = n + 1
		}
	}
	return used
}

// addClusters adds the content of the used clusters of a disk. The first of them is stored in cluster at.
func (m *image) addClusters(disk *image, used []int64, at int64) {
	places := make(map[int64]int64, len(used)) // cluster of the disk -> cluster of the file
	for i, n := range used {
		places[n] = at + int64(i)
	}
	for _, e := range disk.extents {
		for start, rest := e.at, e.data; len(rest) > 0; {
			within := start % qcowCluster
			n := min(int64(len(rest)), qcowCluster-within)
			m.add(places[start/qcowCluster]*qcowCluster+within, rest[:n])
			start, rest = start+n, rest[n:]
		}
	}
}
