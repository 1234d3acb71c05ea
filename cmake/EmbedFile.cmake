# cmake -DINPUT=file -DOUTPUT=file.cpp -DHEADER=x.h -DNAME=kName -P EmbedFile.cmake
# Writes the bytes of a file as a C++ array NAME and its size NAMESize.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\nconst unsigned char ${NAME}[] = {\n${bytes}};\nconst unsigned long ${NAME}Size = sizeof ${NAME};\n")
