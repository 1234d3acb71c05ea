/*===- main.c - starts a tool -------------------------------------------------*
 *
 * MOA_TOOL_MAIN names the tool's function, which is linked in or is in libmoa-c.so.
 *
 *===-------------------------------------------------------------------------*/

int MOA_TOOL_MAIN(int argc, char **argv);

int main(int argc, char **argv) { return MOA_TOOL_MAIN(argc, argv); }
