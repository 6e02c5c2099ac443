#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/tcp.h>

#define F64 static noinline
