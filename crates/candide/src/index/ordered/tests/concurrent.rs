//! Many threads.

use super::*;
