package metrics

// Outcomes of an operation, a request or a publish. OutcomeOK is success;
// OutcomeRefused an answer that a rule or the caller's input asks for (ENOENT,
// EEXIST, EROFS, ESTALE…), OutcomeCanceled an interrupted one, OutcomeError a
// failure (EIO and the like).
const (
	OutcomeOK       = "ok"
	OutcomeRefused  = "refused"
	OutcomeCanceled = "canceled"
	OutcomeError    = "error"
)

// Directions of Set.StoreBytes.
const (
	DirectionRead    = "read"
	DirectionWritten = "written"
)

// Holders of Set.Memory.
const (
	HolderCache   = "cache"
	HolderStaging = "staging"
	HolderHeap    = "heap"
)

// Set is every metric of a mount, by name. All fields are filled by NewSet and
// are not to be replaced; the embedded Registry writes them.
type Set struct {
	Registry

	// fs
	Operations       *CounterVec   // operation (FUSE's, in lower case), outcome
	OperationSeconds *HistogramVec // operation
	OpenHandles      *Gauge
	Redirects        *Counter // opens answered by ESTALE for the kernel to look up again

	// objectstore, fed at the edge by whoever wraps the store
	StoreRequests *CounterVec   // operation, outcome
	StoreSeconds  *HistogramVec // operation
	StoreBytes    *CounterVec   // direction
	StoreSent     *Counter      // bytes of requests, as they go out
	StoreRetries  *Counter

	// cache: bound to cache.Stats
	CacheHits, CacheMisses, CacheFetches, CacheFetchedBytes, CacheUncached *Func

	// fs: files of a directory that were fetched before they were opened
	PrefetchedFiles, PrefetchedBytes, PrefetchedUsed *Counter

	// disk cache: bound to cache.Disk's Stats; 0 without one
	DiskHits, DiskMisses, DiskCorrupt, DiskWritten, DiskDropped, DiskEvicted *Func
	DiskBytes, DiskLimit                                                     *Func

	// memory: bound to who holds it
	Memory      *FuncVec // holder
	MemoryLimit *Func

	// catalogview, fed by the catalog's own service
	CatalogRequests *CounterVec   // operation (Glue's, as its API has it), outcome
	CatalogSeconds  *HistogramVec // operation
	CatalogRetries  *Counter

	// commit and staging
	Publishes                              *CounterVec // outcome
	PublishSeconds                         *Histogram
	PublishedBytes                         *Counter
	StagedWrites, StagedBytes              *Func
	LocalFiles, LocalBytes                 *Func
	StagedFailed, StagedTorn, StagedExpire *Counter
}

func outcomes() Label {
	return Label{"outcome", []string{OutcomeOK, OutcomeRefused, OutcomeCanceled, OutcomeError}}
}

// NewSet makes the metrics of one mount, all zero.
func NewSet() *Set {
	s := new(Set)
	s.addFS()
	s.addStore()
	s.addCatalog()
	s.addMemory()
	s.addPublish()
	return s
}

func (s *Set) addFS() {
	operation := Label{"operation", []string{
		"lookup", "getattr", "setattr", "readdir", "opendir", "open", "create", "read", "write", "flush", "fsync",
		"release", "rename", "unlink", "mkdir", "rmdir", "statfs", "getxattr", "listxattr", "setxattr", "removexattr",
		"allocate", "lseek", "copy_file_range", "getlk", "setlk", "access", "symlink", "link", "mknod", "readlink",
	}}
	s.Operations = s.CounterVec("lakefs_mount_fuse_operations_total",
		"FUSE operations answered, by operation and outcome.", operation, outcomes())
	s.OperationSeconds = s.HistogramVec("lakefs_mount_fuse_operation_seconds",
		"Time from a FUSE request to its answer.", operation)
	s.OpenHandles = s.Gauge("lakefs_mount_open_handles", "Open file handles.")
	s.Redirects = s.Counter("lakefs_mount_open_redirects_total",
		"Opens sent back to look up the newest version.")
	s.PrefetchedFiles = s.Counter("lakefs_mount_prefetched_files_total",
		"Files asked for before they were opened, in a directory that is being read in order.")
	s.PrefetchedBytes = s.Counter("lakefs_mount_prefetched_bytes_total", "Bytes of these files.")
	s.PrefetchedUsed = s.Counter("lakefs_mount_prefetched_used_total", "Those of these files that were opened then.")
}

func (s *Set) addStore() {
	operation := Label{"operation", []string{
		"stat", "list", "read", "put", "copy", "delete", "open", "adopt", "rename",
		"make_directory", "rename_directory", "upload", "part", "complete", "abort",
	}}
	s.StoreRequests = s.CounterVec("lakefs_mount_store_requests_total",
		"Requests to the object store, by operation and outcome.", operation, outcomes())
	s.StoreSeconds = s.HistogramVec("lakefs_mount_store_request_seconds",
		"Time from a request to the object store to its answer (of a read: to its headers).", operation)
	s.StoreBytes = s.CounterVec("lakefs_mount_store_bytes_total",
		"Bytes of objects read from and written to the store.",
		Label{"direction", []string{DirectionRead, DirectionWritten}})
	s.StoreSent = s.Counter("lakefs_mount_store_sent_bytes_total",
		"Bytes of requests to the object store as they go out, retries included.")
	s.StoreRetries = s.Counter("lakefs_mount_store_retries_total", "Requests to the object store asked again.")
}

func (s *Set) addCatalog() {
	operation := Label{"operation", []string{
		"GetDatabases", "GetDatabase", "GetTables", "GetTable", "GetPartitions", "GetPartition", "BatchCreatePartition",
	}}
	s.CatalogRequests = s.CounterVec("lakefs_mount_catalog_requests_total",
		"Requests to the catalog service, by operation and outcome.", operation, outcomes())
	s.CatalogSeconds = s.HistogramVec("lakefs_mount_catalog_request_seconds",
		"Time from a request to the catalog service to its answer.", operation)
	s.CatalogRetries = s.Counter("lakefs_mount_catalog_retries_total", "Requests to the catalog service asked again.")
}

func (s *Set) addMemory() {
	s.CacheHits = s.CounterFunc("lakefs_mount_cache_hits_total",
		"Blocks read that were in the cache or on their way into it.")
	s.CacheMisses = s.CounterFunc("lakefs_mount_cache_misses_total", "Blocks read that had to be fetched.")
	s.CacheFetches = s.CounterFunc("lakefs_mount_cache_fetches_total", "Ranges fetched, read-ahead included.")
	s.CacheFetchedBytes = s.CounterFunc("lakefs_mount_cache_fetched_bytes_total", "Bytes fetched.")
	s.CacheUncached = s.CounterFunc("lakefs_mount_cache_uncached_total",
		"Reads past the cache because the memory budget was exhausted.")
	s.DiskHits = s.CounterFunc("lakefs_mount_disk_cache_hits_total", "Blocks served from the disk cache.")
	s.DiskMisses = s.CounterFunc("lakefs_mount_disk_cache_misses_total", "Blocks that were not in the disk cache, and asked of the store.")
	s.DiskCorrupt = s.CounterFunc("lakefs_mount_disk_cache_corrupt_total", "Blocks of the disk cache found damaged, and removed.")
	s.DiskWritten = s.CounterFunc("lakefs_mount_disk_cache_written_total", "Blocks written to the disk cache.")
	s.DiskDropped = s.CounterFunc("lakefs_mount_disk_cache_dropped_total",
		"Blocks not written to the disk cache: no memory for them, or the disk was behind or failed.")
	s.DiskEvicted = s.CounterFunc("lakefs_mount_disk_cache_evicted_total", "Blocks removed from the disk cache for others.")
	s.DiskBytes = s.GaugeFunc("lakefs_mount_disk_cache_bytes", "What the disk cache takes of its disk.")
	s.DiskLimit = s.GaugeFunc("lakefs_mount_disk_cache_limit_bytes", "What the disk cache may take of its disk.")
	s.Memory = s.GaugeFuncVec("lakefs_mount_memory_bytes", "Memory in use, by holder.",
		Label{"holder", []string{HolderCache, HolderStaging, HolderHeap}})
	s.MemoryLimit = s.GaugeFunc("lakefs_mount_memory_limit_bytes", "The memory budget.")
}

func (s *Set) addPublish() {
	s.Publishes = s.CounterVec("lakefs_mount_publishes_total", "Publishes of a file, by outcome.", outcomes())
	s.PublishSeconds = s.Histogram("lakefs_mount_publish_seconds", "Time of a publish.")
	s.PublishedBytes = s.Counter("lakefs_mount_published_bytes_total", "Bytes of published files.")
	s.StagedWrites = s.GaugeFunc("lakefs_mount_staged_writes", "Files that wait in the staging directory; not those of the mount alone.")
	s.StagedBytes = s.GaugeFunc("lakefs_mount_staged_bytes", "Bytes of files that wait in the staging directory.")
	s.LocalFiles = s.GaugeFunc("lakefs_mount_local_files", "Files that live in the mount alone, and wait for nobody.")
	s.LocalBytes = s.GaugeFunc("lakefs_mount_local_bytes", "Bytes of files that live in the mount alone.")
	s.StagedFailed = s.Counter("lakefs_mount_staged_failed_total", "Files whose publish failed and that were kept.")
	s.StagedTorn = s.Counter("lakefs_mount_staged_torn_total", "Files whose writer was killed.")
	s.StagedExpire = s.Counter("lakefs_mount_staged_expired_total", "Kept files removed by age or size limits.")
}
