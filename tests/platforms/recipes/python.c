/* python.exe: starts the interpreter in python311.dll, which the panda3d wheel carries without a program of its own. */
#include <stdio.h>
#include <windows.h>

typedef int (*py_main)(int, wchar_t **);

int wmain(int count, wchar_t **arguments)
{
    HMODULE library = LoadLibraryW(L"python311.dll");
    if (!library) {
        fprintf(stderr, "python311.dll does not load: error %lu\n", GetLastError());
        return 99;
    }

    py_main run = (py_main)(void *)GetProcAddress(library, "Py_Main");
    return run(count, arguments);
}
