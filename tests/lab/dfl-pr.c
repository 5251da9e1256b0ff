/*
 * Asks Linux's DFL driver to program a region: the ioctl DFL_FPGA_FME_PORT_PR
 * of include/uapi/linux/fpga-dfl.h, and nothing else. It stands in C because it
 * is the driver's user, not ours: it shares no line with what it judges.
 *
 *     dfl-pr PORT FILE        prints the errno, 0 for success
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fpga-dfl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct stat stat;
	int device, file;
	void *bytes;

	if (count != 3) {
		fprintf(stderr, "usage: dfl-pr PORT FILE\n");
		return 2;
	}
	device = open("/dev/dfl-fme.0", O_RDWR);
	file = open(words[2], O_RDONLY);
	if (device < 0 || file < 0 || fstat(file, &stat) < 0) {
		perror("dfl-pr");
		return 2;
	}
	bytes = stat.st_size == 0 ? "" : mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	struct dfl_fpga_fme_port_pr pr = {
		.argsz = sizeof(pr),
		.port_id = atoi(words[1]),
		.buffer_size = stat.st_size,
		.buffer_address = (uintptr_t)bytes,
	};
	printf("%d\n", ioctl(device, DFL_FPGA_FME_PORT_PR, &pr) < 0 ? errno : 0);
	return 0;
}
