"""Files and programs: safe paths, durable writes, locks and bounded processes. Knows nothing of workflows."""
