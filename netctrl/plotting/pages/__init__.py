"""Reports: a record as one HTML page (`netctrl.core.register.REPORTS`, `record.report(path)`)."""
