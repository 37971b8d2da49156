"""Files and programs: safe paths, durable writes, locks and bounded processes; nothing about workflows."""
