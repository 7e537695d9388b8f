package gluetest

import (
	"encoding/json"
)

// operation answers one call. The server's mutex is held.
type operation func(s *store, c *Call) (json.RawMessage, error)

// operationOf is the operation of a name; nil: there is none.
func operationOf(name string) operation {
	switch name {
	case "GetDatabases":
		return getDatabases
	case "GetDatabase":
		return getDatabase
	case "CreateDatabase":
		return createDatabase
	case "DeleteDatabase":
		return deleteDatabase
	case "GetTables":
		return getTables
	case "GetTable":
		return getTable
	case "CreateTable":
		return createTable
	case "UpdateTable":
		return updateTable
	case "DeleteTable":
		return deleteTable
	}
	return partitionOperation(name)
}

func partitionOperation(name string) operation {
	switch name {
	case "GetPartitions":
		return getPartitions
	case "GetPartition":
		return getPartition
	case "CreatePartition":
		return createPartition
	case "BatchCreatePartition":
		return batchCreatePartition
	case "BatchGetPartition":
		return batchGetPartition
	case "UpdatePartition":
		return updatePartition
	case "DeletePartition":
		return deletePartition
	case "BatchDeletePartition":
		return batchDeletePartition
	}
	return nil
}

// empty is the answer of an operation that has nothing to say.
func empty() json.RawMessage { return json.RawMessage("{}") }
