// Structures of include/uapi of Linux 6.12 that the headers of Debian 12 lack.
#include <linux/types.h>

struct procmap_query {
	__u64 size, query_flags, query_addr;
	__u64 vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	__u32 dev_major, dev_minor, vma_name_size, build_id_size;
	__u64 vma_name_addr, build_id_addr;
};
