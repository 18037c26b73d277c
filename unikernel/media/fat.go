package media

// The file system of an EFI system partition: FAT16, which all UEFI firmware reads (UEFI Specification 2.10, 13.3). Source:
// Microsoft, FAT32 File System Specification ("FAT"), which describes FAT16 too.

const (
	fatReserved  = 1   // sectors before the first table: the boot sector
	fatCopies    = 2   // number of tables
	fatRoot      = 512 // entries of the root folder
	fatEntrySize = 32  // size of an entry of a folder in bytes
	fatFirst     = 2   // number of the first cluster

	// A volume is FAT16 if its number of clusters is in this range. Some drivers are off by a few at the bounds.
	fatLeast = 4085 + 16
	fatMost  = 65524 - 16
)

// Attributes and values of entries.
const (
	fatLabel  = 0x08
	fatFolder = 0x10
	fatFile   = 0x20
	fatMedia  = 0xf8   // the medium is a fixed disk
	fatEnd    = 0xffff // last cluster of a chain
	fatDate   = 1 | 1<<5
)

// fat returns a volume with the file /EFI/BOOT/BOOTX64.EFI.
func fat(file []byte) (*image, error) {
	per := int64(1) // sectors in a cluster
	used := func() int64 { return 2 + align(int64(len(file)), per*sector)/(per*sector) }
	for ; used() > fatMost; per *= 2 {
		if per == 64 {
			return nil, ErrTooLarge
		}
	}
	clusters := max(used(), fatLeast)
	tableSectors := align((clusters+fatFirst)*2, sector) / sector
	data := fatReserved + fatCopies*tableSectors + fatRoot*fatEntrySize/sector
	total := data + clusters*per

	b := make([]byte, sector)
	copy(b, "\xeb\x3c\x90LOAM    ") // a jump to code, as the format requires; and the name of the writer
	le.PutUint16(b[11:], sector)
	b[13] = byte(per)
	le.PutUint16(b[14:], fatReserved)
	b[16] = fatCopies
	le.PutUint16(b[17:], fatRoot)
	if total < 1<<16 {
		le.PutUint16(b[19:], uint16(total))
	} else {
		le.PutUint32(b[32:], uint32(total))
	}
	b[21] = fatMedia
	le.PutUint16(b[22:], uint16(tableSectors))
	le.PutUint16(b[24:], 63)  // sectors of a track
	le.PutUint16(b[26:], 255) // heads
	b[36] = 0x80              // number of the drive
	b[38] = 0x29              // the next three fields exist
	copy(b[39:], identifier(file, "volume", 4))
	copy(b[43:], "LOAM       FAT16   ")
	copy(b[62:], "\xcd\x18\xeb\xfe") // int 18h, which lets the BIOS try the next disk; a loop
	copy(b[510:], "\x55\xaa")

	table := make([]byte, 2*(fatFirst+used()))
	le.PutUint16(table, 0xff00|fatMedia)
	le.PutUint16(table[2:], fatEnd)
	le.PutUint16(table[2*fatFirst:], fatEnd)
	le.PutUint16(table[2*fatFirst+2:], fatEnd)
	for n := int64(fatFirst + 2); n < fatFirst+used(); n++ {
		next := uint16(n + 1)
		if n == fatFirst+used()-1 {
			next = fatEnd
		}
		le.PutUint16(table[2*n:], next)
	}

	cluster := func(n int64) int64 { return (data + (n-fatFirst)*per) * sector }
	m := &image{size: total * sector}
	m.add(0, b)
	for i := range int64(fatCopies) {
		m.add((fatReserved+i*tableSectors)*sector, table)
	}
	const folderEFI, folderBoot, application = fatFirst, fatFirst + 1, fatFirst + 2
	m.add((fatReserved+fatCopies*tableSectors)*sector, folder(
		entry{"LOAM", fatLabel, 0, 0}, entry{"EFI", fatFolder, folderEFI, 0}))
	m.add(cluster(folderEFI), folder(
		entry{".", fatFolder, folderEFI, 0}, entry{"..", fatFolder, 0, 0}, entry{"BOOT", fatFolder, folderBoot, 0}))
	m.add(cluster(folderBoot), folder(
		entry{".", fatFolder, folderBoot, 0}, entry{"..", fatFolder, folderEFI, 0},
		entry{"BOOTX64 EFI", fatFile, application, uint32(len(file))}))
	m.add(cluster(application), file)
	return m, nil
}

// entry is an entry of a folder.
type entry struct {
	name    string // eight characters and three of the extension, without the dot
	kind    byte
	cluster uint16
	size    uint32
}

// folder encodes the entries of a folder (FAT, section 6).
func folder(entries ...entry) []byte {
	var b []byte
	for _, e := range entries {
		at := len(b)
		b = append(b, make([]byte, fatEntrySize)...)
		copy(b[at:], "           ")
		copy(b[at:], e.name)
		b[at+11] = e.kind
		le.PutUint16(b[at+16:], fatDate) // created on 1 January 1980, the first day of the format
		le.PutUint16(b[at+18:], fatDate) // last access
		le.PutUint16(b[at+24:], fatDate) // last write
		le.PutUint16(b[at+26:], e.cluster)
		le.PutUint32(b[at+28:], e.size)
	}
	return b
}
