//! The scenarios that hold for every part of Cloudcoil together.
