"""Reports: a record as one HTML page (`netctrl.register.REPORTS`, `record.report(path)`)."""
