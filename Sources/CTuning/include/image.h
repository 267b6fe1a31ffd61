#ifndef DEFERD_IMAGE_H
#define DEFERD_IMAGE_H

/// Lets go of the pages of program and libraries that are mapped from their files and never written: most were needed to
/// start only. Those that are needed again are mapped again.
void deferd_release_image(void);

#endif
