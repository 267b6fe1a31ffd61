#ifndef DEFERD_TUNING_H
#define DEFERD_TUNING_H

/// Releases unmodified pages of the program and its libraries that are mapped from their files: most are needed only at the
/// start. Pages that are needed again are mapped again.
void deferd_release_image(void);

#endif
