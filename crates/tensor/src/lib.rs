//! Data types, shapes, layouts, views, tolerant comparison and memory that several compute units share.
